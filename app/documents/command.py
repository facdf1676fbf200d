"""The word that the reading process is started with."""

COMMAND = "read-documents"
OCR_COMMAND = "read-pictures-of-text"
"""And that which reads pictures."""
