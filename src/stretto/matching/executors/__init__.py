"""What runs a query over a stream: each class takes events, orders or revises them, and gives rows."""
