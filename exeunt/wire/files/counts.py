"""What can be counted of the files of a server's sessions."""

import attrs


@attrs.define
class FileCounts:
    """Counted since the server began."""

    events_written: int = 0
    """Events appended to transcripts."""
    transcripts_behind: int = 0
    """Times that a transcript could not be gone on with, and had to be written anew."""
    transcripts_rewritten: int = 0
    """Times that one was written anew from the log."""
    results_moved: int = 0
    """Long results that were moved into a file."""
    results_kept: int = 0
    """Long results that could not be moved, and that the model was given whole."""
    sessions_rebuilt: int = 0
    """Sessions that were made again of their transcript."""
