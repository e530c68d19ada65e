"""stub"""
def run_planted() -> bool: return False
