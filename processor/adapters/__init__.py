"""Thin shells around the core: Kafka, files, HTTP. The only place that names a client library."""
