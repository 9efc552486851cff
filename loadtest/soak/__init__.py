"""A long load at the normal rate (papers/004's fourteen days): does anything get worse?"""
