// A manager that reserves room for two Jobs together, starts them, and waits until their pods landed.
//
// docs/manager.md describes it, and has the same program in Python.
package main

//go:generate sh generate.sh

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"time"

	pb "example.com/manager/reserverv1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

var (
	jobs    = flag.String("jobs", "examples/manager-go/jobs.yaml", "the Jobs to start")
	runID   = flag.String("run", "", "from your queue; another one for each run")
	lease   = flag.Duration("lease", 5*time.Minute, "how long the room stays reserved if this program dies")
	prepare = flag.Duration("prepare", 4*time.Second, "how long it takes to fetch the data")
)

func room(job string, slots int32) *pb.CreateSetRequest_Entry {
	owner := &pb.ControllerOwner{Kind: "Job", Name: job, Namespace: "shop"}
	return &pb.CreateSetRequest_Entry{
		Name: job,
		Spec: &pb.ReservationSpec{
			Owners:    []*pb.Owner{{Controller: owner}},
			Resources: map[string]string{"cpu": "500m"},
			Slots:     slots,
			Retain:    true, // So what is DELETED was released by somebody.
			Ttl:       durationpb.New(*lease),
		},
	}
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Getenv("RESERVER_ADDRESS")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := pb.NewReservationServiceClient(connection)
	held, err := reserve(ctx, client)
	if err != nil {
		return err
	}
	// Not ctx: the room is released after Ctrl-C, too.
	defer release(context.Background(), client, held)
	fmt.Println("the room is in force")

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(renew(ctx, client, held)) }()
	err = work(ctx, client, held)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// work fetches the data, starts the Jobs, and returns once their pods have landed.
func work(ctx context.Context, client pb.ReservationServiceClient, held []*pb.Reservation) error {
	if err := pause(ctx, *prepare); err != nil {
		return err
	}
	start := exec.CommandContext(ctx, "kubectl", "apply", "-f", *jobs)
	start.Stdout, start.Stderr = os.Stdout, os.Stderr
	if err := start.Run(); err != nil {
		return err
	}
	return follow(ctx, client, held)
}

// reserve returns once all of the set is in force. The same request_id makes it safe to repeat.
func reserve(ctx context.Context, client pb.ReservationServiceClient) ([]*pb.Reservation, error) {
	set := []*pb.CreateSetRequest_Entry{room("launcher", 1), room("worker", 2)}
	request := &pb.CreateSetRequest{Reservations: set, Namespace: "shop", RequestId: *runID}
	for {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		answer, err := client.CreateSet(limited, request, grpc.WaitForReady(true))
		cancel()
		switch status.Code(err) {
		case codes.OK:
			return answer.Reservations, nil
		case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded:
			fmt.Println("not yet:", status.Convert(err).Message())
		default:
			return nil, err
		}
		if err := pause(ctx, 5*time.Second); err != nil {
			return nil, err
		}
	}
}

// renew extends what is held, a third of the lease at a time, until ctx ends or it fails.
func renew(ctx context.Context, client pb.ReservationServiceClient, held []*pb.Reservation) error {
	etags := map[string]string{}
	for _, each := range held {
		etags[each.Id] = each.Etag
	}
	for pause(ctx, *lease/3) == nil {
		for id, etag := range etags {
			until := &pb.ExtendRequest_Ttl{Ttl: durationpb.New(*lease)}
			answer, err := client.Extend(ctx, &pb.ExtendRequest{Name: id, Until: until, Etag: etag})
			switch status.Code(err) {
			case codes.OK:
				etags[id] = answer.Reservation.Etag
			case codes.Aborted: // Somebody edited it. Here their edit stands, and the next round renews it.
				found, err := client.Get(ctx, &pb.GetRequest{Name: id})
				if err != nil {
					return err
				}
				fmt.Println(found.Reservation.Name, "was edited")
				etags[id] = found.Reservation.Etag
			case codes.Unavailable, codes.FailedPrecondition: // The next round; or its pods are landing.
			default:
				return err
			}
		}
	}
	return nil
}

// follow returns once every slot is claimed. A watch that breaks resumes with the last token.
func follow(ctx context.Context, client pb.ReservationServiceClient, held []*pb.Reservation) error {
	request := &pb.WatchRequest{Filter: &pb.ReservationFilter{OwnerNamespace: "shop"}}
	waiting := map[string]bool{}
	for _, each := range held {
		waiting[each.Id] = true
	}
	for {
		stream, err := client.Watch(ctx, request)
		for err == nil && len(waiting) > 0 {
			var change *pb.WatchResponse
			if change, err = stream.Recv(); err != nil {
				break
			}
			if change.ResumeToken != "" {
				request.ResumeToken = change.ResumeToken
			}
			one := change.Reservation // nil in a BOOKMARK
			switch {
			case !waiting[one.GetId()]:
			case change.Kind == pb.WatchResponse_KIND_DELETED:
				return fmt.Errorf("%s was released by somebody", one.Name)
			case one.Status.Phase == pb.Phase_PHASE_CLAIMED:
				delete(waiting, one.Id)
				fmt.Println(one.Name, "has landed")
			}
		}
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.OutOfRange: // Too long away: all is sent again.
			request.ResumeToken = ""
		case codes.Unavailable, codes.ResourceExhausted:
		default:
			if err != io.EOF {
				return err
			}
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func release(ctx context.Context, client pb.ReservationServiceClient, held []*pb.Reservation) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, each := range held {
		_, err := client.Release(ctx, &pb.ReleaseRequest{Name: each.Id}, grpc.WaitForReady(true))
		if code := status.Code(err); code != codes.OK && code != codes.NotFound {
			log.Print(err) // It ends with its lease.
		}
	}
}

func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
