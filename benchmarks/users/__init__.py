"""What users run, against what they would pick instead: funnels and pairs by key, from Parquet to a result, on one core."""
