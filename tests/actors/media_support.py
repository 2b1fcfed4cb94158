"""Pictures and documents for tests, as small as they can be."""

import base64

from exeunt import Media

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"

PIXEL = Media("image/png", PNG, "pixel.png")
PAPER = Media("application/pdf", PDF, "paper.pdf")
NOTES = Media("text/markdown", b"# Notes", "notes.md")
SOUND = Media("audio/wav", b"RIFF....WAVE", "hello.wav")
