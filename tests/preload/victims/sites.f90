! Calls from a subroutine of a module, for test_call_sites.py.
module output
  implicit none
contains
  subroutine save_values(name)
    character(*), intent(in) :: name
    integer :: i, unit
    open (newunit=unit, file=name, access='stream', status='replace')
    do i = 1, 30
      write (unit) i ! mark: write
      flush (unit) ! mark: flush
    end do
    close (unit)
  end subroutine
end module

program sites
  use output
  implicit none
  character(200) :: name
  call get_command_argument(1, name)
  call save_values(trim(name))
end program
