"""The word that the embedding process is started with; the path of the model follows."""

COMMAND = "embed-texts"
