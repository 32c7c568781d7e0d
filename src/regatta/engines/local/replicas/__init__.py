"""From a pod to the processes that play it."""
