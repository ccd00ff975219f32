resource "aws_dynamodb_table" "invoice_and_bills" {
  name                        = "InvoiceAndBills"
  billing_mode                = "PROVISIONED"
  read_capacity               = 100
  write_capacity              = 100
  hash_key                    = "PK"
  range_key                   = "SK"
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  deletion_protection_enabled = false

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  global_secondary_index {
    name            = "GSI_1"
    hash_key        = "SK"
    projection_type = "ALL"
    read_capacity   = 100
    write_capacity  = 100
  }

  point_in_time_recovery {
    enabled = false
  }

  lifecycle {
    prevent_destroy = true
  }
}
