"""The object store: segments, index, and the formats of records and trees."""
