"""Calls and executors over tables and streams, room by room."""
