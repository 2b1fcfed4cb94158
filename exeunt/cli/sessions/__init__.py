"""`exeunt sessions`: what is stored, without a host.

Reading order: `place` (which journal), `looking` (list, show, delete), `transfer` (export and import as JSON lines),
`checking` (verify and repair).
"""
