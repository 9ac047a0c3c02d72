namespace unflake {}
