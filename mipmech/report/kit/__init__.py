"""What reports are made of: sentences, tables, pictures, and the views that hold them."""
