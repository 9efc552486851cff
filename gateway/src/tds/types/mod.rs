//! The data types of both dialects.
