resource "aws_dynamodb_table" "people" {
  name                        = "People"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "NodeId"
  range_key                   = "TypeTarget"
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  deletion_protection_enabled = false

  attribute {
    name = "NodeId"
    type = "S"
  }

  attribute {
    name = "TypeTarget"
    type = "S"
  }

  attribute {
    name = "Target"
    type = "S"
  }

  attribute {
    name = "TypeSource"
    type = "S"
  }

  attribute {
    name = "GSIPK"
    type = "S"
  }

  attribute {
    name = "Data"
    type = "S"
  }

  global_secondary_index {
    name            = "GSI2"
    hash_key        = "Target"
    range_key       = "TypeSource"
    projection_type = "ALL"
  }

  global_secondary_index {
    name            = "GSI1"
    hash_key        = "GSIPK"
    range_key       = "Data"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = false
  }

  lifecycle {
    prevent_destroy = true
  }
}
