resource "aws_dynamodb_table" "every_setting-1" {
  name                        = "Every.Setting-1"
  billing_mode                = "PROVISIONED"
  read_capacity               = 5
  write_capacity              = 6
  hash_key                    = "PK"
  range_key                   = "SK"
  stream_enabled              = false
  deletion_protection_enabled = true

  tags = {
    "cost center" = "a/b:c@d"
    "\u00e9quipe" = ""
  }

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "N"
  }

  attribute {
    name = "x"
    type = "S"
  }

  attribute {
    name = "y"
    type = "B"
  }

  global_secondary_index {
    name            = "Own"
    hash_key        = "x"
    projection_type = "KEYS_ONLY"
    read_capacity   = 1
    write_capacity  = 2
  }

  global_secondary_index {
    name               = "Inherits"
    hash_key           = "x"
    range_key          = "y"
    projection_type    = "INCLUDE"
    non_key_attributes = ["a", "b c"]
    read_capacity      = 5
    write_capacity     = 6
  }

  local_secondary_index {
    name            = "Local"
    range_key       = "y"
    projection_type = "ALL"
  }

  ttl {
    attribute_name = "expires"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  lifecycle {
    prevent_destroy = true
  }
}
