"""Native code of products, reductions, scans, sorting and linear algebra."""
