resource "aws_dynamodb_table" "matches" {
  name                        = "Matches"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "id"
  stream_enabled              = true
  stream_view_type            = "NEW_AND_OLD_IMAGES"
  deletion_protection_enabled = false

  attribute {
    name = "id"
    type = "S"
  }

  attribute {
    name = "tournament"
    type = "S"
  }

  attribute {
    name = "region"
    type = "S"
  }

  attribute {
    name = "round"
    type = "N"
  }

  attribute {
    name = "bracket"
    type = "S"
  }

  attribute {
    name = "player"
    type = "S"
  }

  global_secondary_index {
    name               = "ByRound"
    projection_type    = "INCLUDE"
    non_key_attributes = ["score"]

    key_schema {
      attribute_name = "tournament"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "region"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "round"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "bracket"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "id"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "ByPlayer"
    projection_type = "ALL"

    key_schema {
      attribute_name = "player"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "tournament"
      key_type       = "RANGE"
    }

    key_schema {
      attribute_name = "region"
      key_type       = "RANGE"
    }
  }

  global_secondary_index {
    name            = "ByRegion"
    hash_key        = "region"
    range_key       = "tournament"
    projection_type = "ALL"
  }

  point_in_time_recovery {
    enabled = false
  }

  lifecycle {
    prevent_destroy = true
  }
}
