"""The word that the reading process is started with."""

COMMAND = "read-documents"
