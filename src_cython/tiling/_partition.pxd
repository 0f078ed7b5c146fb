# One axis: where its partitions begin and end, and the overlay of two partitionings of it. Nothing is for cimport.
