"""Text that every later door can encode."""

REPLACEMENT = "\ufffd"


def encodable(text: str) -> str:
    r"""Return *text* with each lone surrogate replaced by U+FFFD.

    JSON may smuggle in half a surrogate pair (`"\ud83d"`). UTF-8 refuses it, so it would raise far from
    here: in the body of the next model request, in the journal, or in a log line.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
