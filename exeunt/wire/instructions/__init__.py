"""Files with instructions that clients name: read from the folders that the server lets them, and no others.

Reading order: `places` (which folders, and no way out of them), `files` (opening what is in them), `documents` (what a
file says), `reading` (all of them together).
"""

from exeunt.wire.instructions.documents import Source
from exeunt.wire.instructions.reading import Instructions, Reader

__all__ = ["Instructions", "Reader", "Source"]
