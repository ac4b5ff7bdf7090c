"""Writing a spool. `lines` and `writer` are byte for byte those of farebox's `storage/spool`; a test keeps them so."""
