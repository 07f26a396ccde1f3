"""The bus: what the actors need from NATS, stated as a port, with a NATS and an in-memory implementation.

Contract in `port.py`, the real thing in `nats/`, the model of it in `memory/`; both pass one conformance
suite (`tests/actors/bus/`), so what the simulation proves on the model holds on the server.
"""
