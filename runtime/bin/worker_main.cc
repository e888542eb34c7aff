// paceline-worker: trains the built-in models on files.

#include "runtime/bin/run_member.h"

int main(int argc, char** argv) {
  return paceline::run_member(argc, argv, {});
}
