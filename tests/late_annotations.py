"""Functions whose annotations Python did not evaluate when it defined them: of all modules from Python 3.14 on."""

import __future__

import sys
from typing import Any

FLAGS = 0 if sys.version_info >= (3, 14) else __future__.annotations.compiler_flag


def defined(source: str, **names: Any) -> dict[str, Any]:
    """Run *source*, a module that knows *names*, and return what it then holds."""
    exec(compile(source, "late_annotations", "exec", flags=FLAGS, dont_inherit=True), names)
    return names
