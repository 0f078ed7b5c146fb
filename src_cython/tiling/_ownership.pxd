# Who owns what: partition coordinates of tiles, and shard tables. Nothing is for cimport.
