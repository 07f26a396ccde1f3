"""What is said: every message, subject, stream and id of the system. Pure: msgspec and the standard library.

Everything else depends on this package and it depends on nothing, so a process in another language needs
to read only these pages (or the AsyncAPI document generated from them) to take part.
"""
