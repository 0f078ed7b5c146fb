# Loads of transfer lists. Nothing is for cimport.
