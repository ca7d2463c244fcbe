"""Benchmarks of matching on Spark, against counting passes, Flink and what Spark users write by hand."""
