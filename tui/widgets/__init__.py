"""What pages are made of: figures that draw lines, and the drawings in them."""
