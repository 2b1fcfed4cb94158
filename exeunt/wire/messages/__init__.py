"""The parameters of the protocol's methods, by namespace. The names of the fields are the protocol's own.

Fields that a method does not know are ignored: clients of other versions send more. What it does know must have the
right type.
"""
