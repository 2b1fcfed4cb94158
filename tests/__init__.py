"""Tests of Exeunt; each folder mirrors a room or a door, and each file is run by pytest."""
