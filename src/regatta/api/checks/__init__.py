"""What is wrong with a job, in a sentence."""
