! handler_mpif with the module mpi.
program handler_use
  use mpi
  implicit none
  external on_error
  integer :: file, handler, error, calls, seen, class, status(MPI_STATUS_SIZE), rank, value
  common /record/ calls, seen, class
  character(len=200) :: path
  calls = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, path)
  call MPI_File_open(MPI_COMM_WORLD, trim(path), &
                     MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                     MPI_INFO_NULL, file, error)
  call MPI_File_create_errhandler(on_error, handler, error)
  call MPI_File_set_errhandler(file, handler, error)
  if (error /= MPI_SUCCESS) print *, "not set"
  call MPI_Errhandler_free(handler, error)
  call MPI_File_read_at(file, -1_MPI_OFFSET_KIND, value, 1, MPI_INTEGER, status, error)
  if (calls /= 1) print *, "not called", calls
  if (seen /= file) print *, "another file", seen, file
  if (class /= MPI_ERR_ARG) print *, "class", class
  call MPI_File_close(file, error)
  if (rank == 0) print *, "No Errors"
  call MPI_Finalize(error)
end program
subroutine on_error(file, code)
  use mpi
  integer :: file, code, calls, seen, class, error
  common /record/ calls, seen, class
  calls = calls + 1
  seen = file
  call MPI_Error_class(code, class, error)
end subroutine
