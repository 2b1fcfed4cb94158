"""What `exeunt demo` plays: thousands of sessions at once, with all that goes well and wrong in them.

It lives in loadtests/ and is linked into the package as `exeunt.demo`, so that an installed Exeunt has it too. It
uses nothing but what any host program may use: `exeunt`, `exeunt.metrics` and `exeunt.testing`.

Reading order: `acts` (what guests ask and what the model does then), `tools`, `director` (the model), `guests` (the
people in front of the sessions), `refusals` (what they do when there is no room), `tally` (what happened),
`performance` (the run), `second_act` and `worker` (a process that is killed), `verdict` (were all promises kept),
`screen` and `layout` (how it looks), `stage` (all of it together).
"""

from exeunt.demo.stage import DemoOptions, run_demo

__all__ = ["DemoOptions", "run_demo"]
