"""Scraping: metrics pages of engines that tell no steps, read into intervals that can be booked."""
