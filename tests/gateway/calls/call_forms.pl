use DBI;
my ($server, $port, $user) = @ARGV;
chomp(my $password = <STDIN>);
my $db = DBI->connect("dbi:Sybase:server=$server", $user, $password,
  {RaiseError => 1, PrintError => 0, AutoCommit => 1});
my $select = $db->prepare("select i, v from call_forms.rows(10) where i > ? and v like ?");
for my $least (8, 9) {
  $select->execute($least, "row %");
  print join(",", map { "@$_" } @{$select->fetchall_arrayref}), "\n";
}
$select->finish;
my $insert = $db->prepare("insert into call_forms.things (id, name, size) values (?, ?, ?)");
$insert->execute($_, "thing $_", $_ / 2) for 1 .. 3;
$insert->finish;
my $call = $db->prepare("exec call_forms.outs ?, ? output, ? output, ? output");
$call->bind_param(1, 3, DBI::SQL_INTEGER);
$call->bind_param(2, "x");
$call->bind_param(3, 1.0, DBI::SQL_FLOAT);
$call->bind_param(4, "Jan 1 2000");
$call->execute;
my @out;
do { while (my $row = $call->fetch) { push @out, "@$row" } } while $call->{syb_more_results};
print join(";", @out), "\n";
eval { $db->do("exec call_forms.stat -5") };
print $@ =~ /negative -5/ ? "refused\n" : "not refused: $@\n";
$db->disconnect;
