"""What the methods of the protocol do, by namespace. `exeunt.wire.table` says which method is which function."""
