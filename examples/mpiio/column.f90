! The twin of column.c: each rank owns rows of a column-major array. Usage: column_f90 [FILE]
program column
  use mpi_f08
  implicit none
  integer, parameter :: columns = 4096, width = 16
  integer :: rank, ranks, wrong, wrong_in_all, i, j
  real(8), allocatable :: part(:, :)
  character(len=4096) :: path
  type(MPI_File) :: file
  type(MPI_Datatype) :: rows
  integer(MPI_OFFSET_KIND), parameter :: start = 0

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  path = "column_f90.dat"
  if (command_argument_count() > 0) call get_command_argument(1, path)
  allocate(part(width, columns))
  call fill(part)

  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, &
                     MPI_INFO_NULL, file)
  call MPI_Type_create_subarray(2, [width * ranks, columns], [width, columns], [width * rank, 0], &
                                MPI_ORDER_FORTRAN, &
                                MPI_REAL8, rows)
  call MPI_Type_commit(rows)
  call MPI_File_set_view(file, start, MPI_REAL8, rows, "native", MPI_INFO_NULL)
  call MPI_File_write_all(file, part, width * columns, MPI_REAL8, MPI_STATUS_IGNORE)
  part = -1
  call MPI_File_seek(file, start, MPI_SEEK_SET)
  call MPI_File_read_all(file, part, width * columns, MPI_REAL8, MPI_STATUS_IGNORE)
  call MPI_File_close(file)
  call MPI_Type_free(rows)

  wrong = 0
  do j = 1, columns
    do i = 1, width
      if (part(i, j) /= element(width * rank + i, j)) wrong = wrong + 1
    end do
  end do
  call MPI_Reduce(wrong, wrong_in_all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) print '(i0, " x ", i0, " array by rows, ", i0, " ranks, ", i0, " wrong")', &
                         width * ranks, columns, ranks, wrong_in_all
  call MPI_Finalize()
  if (wrong /= 0) stop 1

contains

  pure real(8) function element(row, col)
    integer, intent(in) :: row, col
    element = col * 1d4 + row
  end function element

  subroutine fill(array)
    real(8), intent(out) :: array(:, :)
    integer :: row, col
    do col = 1, size(array, 2)
      do row = 1, size(array, 1)
        array(row, col) = element(width * rank + row, col)
      end do
    end do
  end subroutine fill

end program column
