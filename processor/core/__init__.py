"""The pure core: decode, assemble, gate, decide. No I/O, no clock, no globals."""
