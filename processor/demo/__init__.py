"""The demo: shipped streams of real shapes, and what shows them."""
