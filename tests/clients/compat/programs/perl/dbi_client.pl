# A DBD::Sybase client that takes part in the conversation of tests/clients/compat/conversation.py.
#
#   dbi_client.pl SERVER USER        SERVER is a section of freetds.conf
use strict;
use warnings;
use utf8;
use DBI qw(:sql_types);
use JSON::PP;

binmode(STDIN, ':encoding(UTF-8)');
binmode(STDOUT, ':encoding(UTF-8)');
$| = 1;

my %SQL_TYPES = (
    bit => SQL_BIT, smallint => SQL_INTEGER, int => SQL_INTEGER, bigint => SQL_NUMERIC, real => SQL_REAL,
    float => SQL_FLOAT, char => SQL_VARCHAR, datetime => SQL_TIMESTAMP, date => SQL_TIMESTAMP,
    numeric => SQL_NUMERIC, binary => SQL_BINARY, text => SQL_LONGVARCHAR,
);
my $JSON = JSON::PP->new->canonical->allow_nonref;
my ($server, $user) = @ARGV;
chomp(my $password = <STDIN>);
my $db;

sub tell_line { my ($kind, $value) = @_; print $JSON->encode({$kind => $value}), "\n" }

# The class of every exception is the same; number and text are DBI's.
sub answering {
    my ($action) = @_;
    if (!eval { $action->(); 1 }) {
        die $@ unless defined $DBI::err;
        tell_line(error => ['DBI::err', $DBI::err + 0, $DBI::errstr]);
    }
    tell_line(end => 'results');
}

sub connection {
    my ($more) = @_;
    my $connected = DBI->connect("dbi:Sybase:server=$server;charset=utf8$more", $user, $password,
        {RaiseError => 1, PrintError => 0, AutoCommit => 1, syb_enable_utf8 => 1, LongReadLen => 4_000_000});
    $connected->{syb_date_fmt} = 'ISO';
    # what is no error goes to this handler alone
    $connected->{syb_err_handler} = sub {
        my ($number, $severity, $state, $line, $from, $procedure, $text) = @_;
        tell_line(message => [$number + 0, $severity + 0, $text]) if $severity <= 10;
        return $severity > 10;
    };
    return $connected;
}

# Values come as Perl's numbers or as bytes of UTF-8; a bigint and a bit come as text.
sub plain {
    my @values = @{$_[0]};
    for (grep defined, @values) {
        utf8::decode($_) if !utf8::is_utf8($_) && /[^\0-\x7f]/;
        $_ += 0 if /^-?\d{16,19}$/;
    }
    return \@values;
}

# All results of a statement: rows, the status, the outputs (DBD::Sybase returns them as rows of other kinds).
sub tell_results {
    my ($statement) = @_;
    do {
        my $kind = $statement->{syb_result_type} // 0;
        tell_line(row_columns => [@{$statement->{NAME}}]) if $statement->{NUM_OF_FIELDS} && $kind == 4040;
        while (my $row = $statement->fetch) {
            if ($kind == 4043) { tell_line(status => $row->[0] + 0) }
            elsif ($kind == 4042) { tell_line(output => plain($row)) }
            else { tell_line(row => plain($row)) }
        }
    } while ($statement->{syb_more_results});
    $statement->finish;
}

sub execute {
    my ($text, @params) = @_;
    my $statement = $db->prepare($text);
    my $place = 0;
    for my $param (@params) {
        my ($type, $name, $direction, $value) = @$param;
        $statement->bind_param(++$place, $value, $SQL_TYPES{$type});
    }
    $statement->execute;
    tell_results($statement);
}

sub call {
    my ($name, @params) = @_;
    my @marks = map { ($_->[1] ? "$_->[1] = ?" : '?') . ($_->[2] eq 'out' ? ' output' : '') } @params;
    execute("exec $name " . join(', ', @marks), @params);
}

sub unescaped { return $_[0] =~ s/\\(.)/$1 eq 't' ? "\t" : $1 eq 'n' ? "\n" : $1/ger }

sub fields { my ($line) = @_; chomp $line; return map { unescaped($_) } split /\t/, $line, -1 }

sub params {
    my @params;
    while ((my $line = <STDIN>) ne "go\n") {
        my ($word, @param) = fields($line);
        push @params, \@param;
    }
    return @params;
}

my %REQUESTS = (
    rpc => sub { call(@_, params()) },
    execute => sub { execute(@_, params()) },
    language => sub { execute(@_) },
    begin => sub { $db->{AutoCommit} = 0 },
    commit => sub { $db->commit; $db->{AutoCommit} = 1 },
    rollback => sub { $db->rollback; $db->{AutoCommit} = 1 },
    abandon => sub {
        my $statement = $db->prepare($_[0]);
        $statement->execute;
        tell_line(row => plain($statement->fetch));
        $statement->cancel;
    },
    timeout => sub {
        my ($seconds, $text) = @_;
        my $impatient = connection(";timeout=$seconds");
        $impatient->do($text);
        $impatient->disconnect;
    },
);

answering(sub { $db = connection('') });
exit 1 unless $db;
while (my $line = <STDIN>) {
    my ($request, @fields) = fields($line);
    answering(sub { $REQUESTS{$request}->(@fields) });
}
$db->disconnect;
