// mpirun -n RANKS bench_allreduce_mpi SIZE...: MPI_Allreduce in place, with the library's own choices.

#include <mpi.h>

#include "measure.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  measure::run(
      measure::parse_sizes(1, argc, argv), rank == 0, measure::pages,
      [](float* data, std::size_t count) {
        MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      },
      [] { MPI_Barrier(MPI_COMM_WORLD); });
  MPI_Finalize();
  return 0;
}
