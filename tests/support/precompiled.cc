// The tests' precompiled header belongs to a program, and a program has a main (cmake/PacelineTargets.cmake).
int main() { return 0; }
