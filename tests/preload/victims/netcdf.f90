! Writes a variable of netCDF-4 by rows, and another value by value.
program steps
  use netcdf
  implicit none
  integer, parameter :: rows = 40, columns = 30
  integer :: file, dimensions(2), by_rows, by_values, i, j
  real(8) :: row(columns)
  call check(nf90_create("data.nc", nf90_netcdf4, file))
  call check(nf90_def_dim(file, "x", columns, dimensions(1)))
  call check(nf90_def_dim(file, "y", rows, dimensions(2)))
  call check(nf90_def_var(file, "rows", nf90_double, dimensions, by_rows))
  call check(nf90_def_var(file, "values", nf90_double, dimensions, by_values))
  call check(nf90_enddef(file))
  do i = 1, rows
    row = i
    call check(nf90_put_var(file, by_rows, row, start=[1, i], count=[columns, 1]))
    do j = 1, columns
      call check(nf90_put_var(file, by_values, row(j), start=[j, i]))
    end do
  end do
  call check(nf90_get_var(file, by_rows, row, start=[1, rows], count=[columns, 1]))
  print "(f4.1)", row(columns)
  call check(nf90_close(file))
contains
  subroutine check(status)
    integer, intent(in) :: status
    if (status /= nf90_noerr) error stop
  end subroutine
end program
