"""A net under the engines: digests of masks, recorded once and checked after each rewrite."""
