"""The papers' tables: run again, and compared with the published figures."""
