"""Made-up secrets and ordinary text, for tests and benches; nothing here is used when the system runs.

Every sample is made when it is asked for, from a seeded `random.Random`: no file of the project holds a text
that a secret scanner would take for a real credential.
"""
